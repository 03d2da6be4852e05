"""Operations with a kernel for TPUs and the types that their kernels take, as TensorFlow 2.21.0 registers
them.

Written by tests/data/graphs/make_tpu_kernels.py, which says how; not to be edited by hand.
"""

from __future__ import annotations

VERSION = "2.21.0"

# TensorFlow's types as users write them; the first has number 1.
_TYPE_NAMES = """
float32 float64 int32 uint8 int16 int8 string complex64 int64 bool qint8 quint8 qint32 bfloat16 qint16 quint16
uint16 complex128 float16 resource variant uint32 uint64 float8_e5m2 float8_e4m3fn float8_e4m3fnuz
float8_e4m3b11fnuz float8_e5m2fnuz int4 uint4 int2 uint2 float4_e2m1fn
"""

# Operations by name.
_OPS = """
Abs Acos Acosh Add AddN AddV2 AdjustContrastv2 AdjustHue AdjustSaturation All Angle Any ApproxTopK
ApproximateEqual ArgMax ArgMin Asin Asinh Assert AssignAddVariableOp AssignSubVariableOp AssignVariableOp
AssignVariableXlaConcatND Atan Atan2 Atanh AvgPool AvgPool3D AvgPool3DGrad AvgPoolGrad BatchMatMul
BatchMatMulV2 BatchMatMulV3 BatchToSpace BatchToSpaceND BesselI0e BesselI1e Betainc BiasAdd BiasAddGrad
BiasAddV1 Bincount Bitcast BitwiseAnd BitwiseOr BitwiseXor BroadcastArgs BroadcastGradientArgs BroadcastTo
Bucketize Case Cast Ceil CheckNumerics Cholesky ClipByValue CollectiveAssignGroupV2 CollectiveReduceV2 Complex
ComplexAbs Concat ConcatOffset ConcatV2 Conj ConjugateTranspose Const ControlTrigger Conv Conv2D
Conv2DBackpropFilter Conv2DBackpropInput Conv3D Conv3DBackpropFilterV2 Conv3DBackpropInputV2 Cos Cosh Cross
Cumprod Cumsum CumulativeLogsumexp DataFormatDimMap DataFormatVecPermute DenseBincount DepthToSpace
DepthwiseConv2dNative DepthwiseConv2dNativeBackpropFilter DepthwiseConv2dNativeBackpropInput Dequantize
DeviceIndex Diag DiagPart Digamma Div DivNoNan DynamicPartition DynamicStitch Einsum Elu EluGrad Empty
EmptyTensorList EnsureShape Equal Erf Erfc Erfinv Exp ExpandDims Expm1 ExtractImagePatches FFT FFT2D FFT3D
FakeParam FakeQuantWithMinMaxArgs FakeQuantWithMinMaxArgsGradient FakeQuantWithMinMaxVars
FakeQuantWithMinMaxVarsGradient FakeQuantWithMinMaxVarsPerChannel FakeQuantWithMinMaxVarsPerChannelGradient
Fill Floor FloorDiv FloorMod FusedBatchNorm FusedBatchNormGrad FusedBatchNormGradV2 FusedBatchNormGradV3
FusedBatchNormV2 FusedBatchNormV3 Gather GatherNd GatherV2 Greater GreaterEqual HSVToRGB IFFT IFFT2D IFFT3D
IRFFT IRFFT2D IRFFT3D Identity IdentityN If Igamma IgammaGradA Igammac Imag InTopKV2 Inv Invert
InvertPermutation IsFinite IsInf IsNan L2Loss LRN LRNGrad LeakyRelu LeakyReluGrad LeftShift Less LessEqual
Lgamma LinSpace ListDiff Log Log1p LogSoftmax LogicalAnd LogicalNot LogicalOr LowerBound MatMul MatrixBandPart
MatrixDiag MatrixDiagPart MatrixDiagPartV2 MatrixDiagPartV3 MatrixDiagV2 MatrixDiagV3 MatrixInverse
MatrixSetDiag MatrixSetDiagV2 MatrixSetDiagV3 MatrixSolve MatrixTriangularSolve Max MaxPool MaxPool3D
MaxPool3DGrad MaxPool3DGradGrad MaxPoolGrad MaxPoolGradGrad MaxPoolGradGradV2 MaxPoolGradV2 MaxPoolV2 Maximum
Mean Min Minimum MirrorPad MirrorPadGrad Mod Mul MulNoNan Multinomial Ndtri Neg NextAfter NoOp
NonMaxSuppressionV3 NonMaxSuppressionV4 NotEqual OneHot OnesLike Pack Pad PadV2 ParallelDynamicStitch
ParameterizedTruncatedNormal PartitionedCall PlaceholderWithDefault Polygamma PopulationCount Pow
PreventGradient Prod Qr QuantizeAndDequantizeV2 QuantizeAndDequantizeV3 QuantizeAndDequantizeV4 RFFT RFFT2D
RFFT3D RGBToHSV RandomGammaGrad RandomShuffle RandomStandardNormal RandomUniform RandomUniformInt Range Rank
ReadVariableOp ReadVariableXlaSplitND Real RealDiv Reciprocal ReciprocalGrad Relu Relu6 Relu6Grad ReluGrad
Reshape ResizeBilinear ResizeBilinearGrad ResizeNearestNeighbor ResourceApplyAdaMax ResourceApplyAdadelta
ResourceApplyAdagrad ResourceApplyAdagradDA ResourceApplyAdagradV2 ResourceApplyAdam ResourceApplyAddSign
ResourceApplyCenteredRMSProp ResourceApplyFtrl ResourceApplyFtrlV2 ResourceApplyGradientDescent
ResourceApplyKerasMomentum ResourceApplyMomentum ResourceApplyPowerSign ResourceApplyProximalAdagrad
ResourceApplyProximalGradientDescent ResourceApplyRMSProp ResourceGather ResourceScatterAdd ResourceScatterDiv
ResourceScatterMax ResourceScatterMin ResourceScatterMul ResourceScatterNdAdd ResourceScatterNdSub
ResourceScatterNdUpdate ResourceScatterSub ResourceScatterUpdate ResourceStridedSliceAssign Reverse
ReverseSequence ReverseV2 RightShift Rint RngReadAndSkip RngSkip Roll Round Rsqrt RsqrtGrad ScatterNd
SegmentMaxV2 SegmentMinV2 SegmentProdV2 SegmentSumV2 Select SelectV2 SelfAdjointEigV2 Selu SeluGrad Shape
ShapeN Sigmoid SigmoidGrad Sign Sin Sinh Size Slice Snapshot Softmax SoftmaxCrossEntropyWithLogits Softplus
SoftplusGrad Softsign SoftsignGrad SpaceToBatch SpaceToBatchND SpaceToDepth SparseMatMul
SparseSoftmaxCrossEntropyWithLogits SparseToDense Split SplitV Sqrt SqrtGrad Square SquaredDifference Squeeze
StackCloseV2 StackPopV2 StackPushV2 StackV2 StatefulPartitionedCall StatefulStandardNormalV2
StatefulTruncatedNormal StatefulUniform StatefulUniformFullInt StatefulUniformInt StatelessCase StatelessIf
StatelessMultinomial StatelessParameterizedTruncatedNormal StatelessRandomGetAlg StatelessRandomGetKeyCounter
StatelessRandomGetKeyCounterAlg StatelessRandomNormal StatelessRandomNormalV2 StatelessRandomUniform
StatelessRandomUniformFullInt StatelessRandomUniformFullIntV2 StatelessRandomUniformInt
StatelessRandomUniformIntV2 StatelessRandomUniformV2 StatelessTruncatedNormal StatelessTruncatedNormalV2
StatelessWhile StochasticCastToInt StopGradient StridedSlice StridedSliceGrad Sub Sum Svd SymbolicGradient Tan
Tanh TanhGrad TensorArrayCloseV3 TensorArrayConcatV3 TensorArrayGatherV3 TensorArrayGradV3 TensorArrayReadV3
TensorArrayScatterV3 TensorArraySizeV3 TensorArraySplitV3 TensorArrayV3 TensorArrayWriteV3 TensorListConcatV2
TensorListElementShape TensorListFromTensor TensorListGather TensorListGetItem TensorListLength
TensorListPopBack TensorListPushBack TensorListReserve TensorListSetItem TensorListSplit TensorListStack
TensorScatterAdd TensorScatterMax TensorScatterMin TensorScatterSub TensorScatterUpdate
TensorStridedSliceUpdate Tile ToBool TopKV2 Transpose TridiagonalMatMul TridiagonalSolve TruncateDiv
TruncateMod TruncatedNormal UniformDequantize UniformQuantize UniformQuantizedAdd UniformQuantizedClipByValue
UniformQuantizedConvolution UniformQuantizedDot UniformRequantize Unique UniqueV2 Unpack UnsortedSegmentMax
UnsortedSegmentMin UnsortedSegmentProd UnsortedSegmentSum UpperBound VarIsInitializedOp VariableShape Where
While Xdivy XlaAllReduce XlaBroadcastHelper XlaCallModule XlaConcatND XlaConv XlaConvV2 XlaCustomCall
XlaCustomCallV2 XlaDequantize XlaDot XlaDotV2 XlaDynamicSlice XlaDynamicUpdateSlice XlaEinsum XlaGather XlaIf
XlaKeyValueSort XlaOptimizationBarrier XlaPad XlaRecv XlaReduce XlaReducePrecision XlaReduceScatter
XlaReduceWindow XlaRemoveDynamicDimensionSize XlaReplicaId XlaRngBitGenerator XlaScatter XlaSelectAndScatter
XlaSelfAdjointEig XlaSend XlaSetBound XlaSetDynamicDimensionSize XlaSharding XlaSort XlaSplitND
XlaSpmdFullToShardShape XlaSpmdShardToFullShape XlaSvd XlaVariadicReduce XlaVariadicReduceV2 XlaVariadicSort
XlaWhile Xlog1py Xlogy ZerosLike Zeta _Arg _ArrayToList _EagerConst _FusedBatchNormEx _FusedConv2D
_ListToArray _Retval _UnaryOpsComposition _XlaAotOnlyVarHandleOp
"""

# Operations that exist for TPUs alone, which no wheel registers.
_TPU_ONLY = """
AllToAll CollectivePermute CrossReplicaSum InfeedDequeue InfeedDequeueTuple InplaceAdd InplaceUpdate
KthOrderStatistic MakeUnique OutfeedEnqueue OutfeedEnqueueTuple ResizeNearestNeighborGrad TopKUnique
TopKWithUnique XlaHostCompute XlaRecvFromHost XlaSendToHost _ParallelConcatUpdate _XlaHostComputeMlir
"""

# A paragraph: the numbers of types, and below the attributes of operations whose kernels take these types and
# no others.
_TYPES = """
1
FusedBatchNorm.T FusedBatchNormGrad.T FusedBatchNormGradV2.U FusedBatchNormGradV3.U FusedBatchNormV2.U
MaxPool3DGradGrad.T MaxPoolGradGrad.T MaxPoolGradGradV2.T UniformDequantize.Tout UniformQuantize.Tin
_FusedBatchNormEx.U

1 2
Angle.Tout Betainc.T Complex.T ComplexAbs.Tout IRFFT.Treal IRFFT2D.Treal IRFFT3D.Treal IgammaGradA.T Imag.Tout
NextAfter.T ParameterizedTruncatedNormal.dtype Polygamma.T RFFT.Treal RFFT2D.Treal RFFT3D.Treal
RandomGammaGrad.T Real.Tout TridiagonalMatMul.T TridiagonalSolve.T TruncatedNormal.dtype Zeta.T

1 2 3 4 5 6 7 8 9 10 11 12 13 14 17 19 20 21 22 23 24 25 26 27 28 29 30
PartitionedCall.Tin PartitionedCall.Tout StatefulPartitionedCall.Tin StatefulPartitionedCall.Tout

1 2 3 4 5 6 7 8 9 10 11 12 13 14 17 19 22 23 24 25 26 27 28 29 30
Assert.T Const.dtype

1 2 3 4 5 6 8 9 10 11 12 13 14 17 19 20 21 22 23 24 25 26 27 28 29 30
Case.Tin Case.Tout Identity.T IdentityN.T If.Tcond If.Tin If.Tout StatelessCase.Tin StatelessCase.Tout
StatelessIf.Tcond StatelessIf.Tin StatelessIf.Tout StatelessWhile.T While.T XlaIf.Tcond XlaIf.Tin XlaIf.Tout
XlaWhile.T _Arg.T _Retval.T

1 2 3 4 5 6 8 9 10 11 12 13 14 17 19 21 22 23 24 25 26 27 28 29 30
EmptyTensorList.element_dtype StopGradient.T TensorListPopBack.element_dtype TensorListPushBack.element_dtype
ZerosLike.T

1 2 3 4 5 6 8 9 10 11 12 13 14 17 19 22 23
Where.T XlaGather.T XlaReduce.T XlaReduceWindow.T XlaScatter.T XlaVariadicReduce.T

1 2 3 4 5 6 8 9 10 11 12 13 14 17 19 22 23 24 25 26 27 28 29 30
AssignVariableOp.dtype AssignVariableXlaConcatND.T BatchToSpace.T BatchToSpaceND.T BroadcastTo.T Cast.DstT
Cast.SrcT Concat.T ConcatV2.T ConjugateTranspose.T DepthToSpace.T DynamicPartition.T DynamicStitch.T
Empty.dtype EnsureShape.T Equal.T ExpandDims.T FakeParam.dtype Fill.T Gather.Tparams GatherNd.Tparams
GatherV2.Tparams LowerBound.T MatrixBandPart.T MatrixDiag.T MatrixDiagPart.T MatrixDiagPartV2.T
MatrixDiagPartV3.T MatrixDiagV2.T MatrixDiagV3.T MatrixSetDiag.T MatrixSetDiagV2.T MatrixSetDiagV3.T
MirrorPad.T MirrorPadGrad.T NotEqual.T OneHot.T Pack.T Pad.T PadV2.T ParallelDynamicStitch.T
PlaceholderWithDefault.dtype PreventGradient.T RandomShuffle.T Rank.T ReadVariableOp.dtype
ReadVariableXlaSplitND.T Reshape.T ResourceGather.dtype ResourceScatterNdAdd.T ResourceScatterNdSub.T
ResourceScatterNdUpdate.T ResourceScatterUpdate.dtype ResourceStridedSliceAssign.T ReverseSequence.T Roll.T
ScatterNd.T Select.T SelectV2.T Shape.T ShapeN.T Size.T Slice.T Snapshot.T SpaceToBatch.T SpaceToBatchND.T
SpaceToDepth.T SparseToDense.T Split.T SplitV.T Squeeze.T StackPopV2.elem_type StackPushV2.T StackV2.elem_type
StatefulStandardNormalV2.shape_dtype StatefulTruncatedNormal.shape_dtype StatefulUniform.shape_dtype
StatefulUniformFullInt.shape_dtype StatefulUniformInt.shape_dtype StridedSlice.T StridedSliceGrad.T
SymbolicGradient.Tin SymbolicGradient.Tout TensorArrayConcatV3.dtype TensorArrayGatherV3.dtype
TensorArrayReadV3.dtype TensorArrayScatterV3.T TensorArraySplitV3.T TensorArrayV3.dtype TensorArrayWriteV3.T
TensorListConcatV2.element_dtype TensorListFromTensor.element_dtype TensorListGather.element_dtype
TensorListGetItem.element_dtype TensorListReserve.element_dtype TensorListSetItem.element_dtype
TensorListSplit.element_dtype TensorListStack.element_dtype TensorScatterAdd.T TensorScatterMax.T
TensorScatterMin.T TensorScatterSub.T TensorScatterUpdate.T TensorStridedSliceUpdate.T Tile.T ToBool.T
Transpose.T Unique.T UniqueV2.T Unpack.T UpperBound.T XlaCallModule.Tin XlaCallModule.Tout XlaConcatND.T
XlaCustomCall.T XlaCustomCall.dtype XlaCustomCallV2.operand_dtypes XlaCustomCallV2.result_dtypes
XlaDynamicSlice.T XlaDynamicUpdateSlice.T XlaKeyValueSort.V XlaOptimizationBarrier.T XlaPad.T XlaRecv.dtype
XlaRemoveDynamicDimensionSize.T XlaSend.T XlaSetDynamicDimensionSize.T XlaSharding.T XlaSort.T XlaSplitND.T
XlaSpmdFullToShardShape.T XlaSpmdShardToFullShape.T XlaVariadicReduceV2.T XlaVariadicSort.T _ArrayToList.T
_ArrayToList.out_types _EagerConst.T _FusedConv2D.TArgs _ListToArray.T _ListToArray.Tin
_XlaAotOnlyVarHandleOp.dtype

1 2 3 4 5 6 8 9 10 14 17 19 22 23
OnesLike.T Reverse.T ReverseV2.T

1 2 3 4 5 6 8 9 11 12 13 14 17 19 21 22 23
AddN.T

1 2 3 4 5 6 8 9 11 12 13 14 17 19 22 23
ApproximateEqual.T BiasAdd.T BiasAddGrad.T BiasAddV1.T Bitcast.T Bitcast.type ClipByValue.T Mean.T Prod.T
ResourceScatterAdd.dtype ResourceScatterDiv.dtype ResourceScatterMax.dtype ResourceScatterMin.dtype
ResourceScatterMul.dtype ResourceScatterSub.dtype SegmentProdV2.T SegmentSumV2.T Sum.T UnsortedSegmentProd.T
UnsortedSegmentSum.T XlaBroadcastHelper.T XlaConv.T XlaConvV2.LhsT XlaConvV2.RhsT
XlaConvV2.preferred_element_type XlaDot.T XlaDotV2.LhsT XlaDotV2.RhsT XlaDotV2.preferred_element_type
XlaSelectAndScatter.T XlaSelfAdjointEig.T

1 2 3 4 5 6 8 9 14 17 19 22 23
AddV2.T AssignAddVariableOp.dtype AssignSubVariableOp.dtype Div.T FloorDiv.T Mul.T RealDiv.T Square.T Sub.T
TruncateDiv.T

1 2 3 4 5 6 8 9 14 19
Add.T BatchMatMulV3.Ta BatchMatMulV3.Tb

1 2 3 4 5 6 9 10 11 12 13 14 17 19 22 23
ArgMax.T ArgMin.T

1 2 3 4 5 6 9 11 12 13 14 17 19 22 23
Max.T Min.T

1 2 3 4 5 6 9 11 14 17 19
MaxPool.T MaxPoolV2.T

1 2 3 4 5 6 9 11 14 17 19 22 23
Relu.T

1 2 3 4 5 6 9 14 17 19
ResizeBilinear.T ResizeNearestNeighbor.T

1 2 3 4 5 6 9 14 17 19 22 23
Cross.T FloorMod.T Greater.T GreaterEqual.T Less.T LessEqual.T MaxPoolGrad.T MaxPoolGradV2.T Maximum.T
Minimum.T Multinomial.T Relu6.T Relu6Grad.T ReluGrad.T SegmentMaxV2.T SegmentMinV2.T UnsortedSegmentMax.T
UnsortedSegmentMin.T XlaKeyValueSort.K

1 2 3 4 5 6 9 14 19 22 23
TopKV2.T

1 2 3 4 5 8 9 14 17 19 22 23
BatchMatMulV2.T

1 2 3 5 6 8 9 14 19
Inv.T Neg.T Pow.T Reciprocal.T Round.T Sign.T

1 2 3 5 6 9 14 17 19 22 23
Range.Tidx

1 2 3 5 6 9 14 19
Abs.T

1 2 3 5 8 9 14 19
BatchMatMulV3.Tout

1 2 3 8 9 14 19
BatchMatMul.T Diag.T DiagPart.T MatMul.T SquaredDifference.T

1 2 3 8 9 14 19 23
Einsum.T

1 2 3 9
Bincount.T Bucketize.T DenseBincount.T

1 2 3 9 14 19
CollectiveReduceV2.T Cumprod.T Cumsum.T Mod.T TruncateMod.T

1 2 3 14 19
Conv.T Conv2D.T Conv2DBackpropInput.T ExtractImagePatches.T

1 2 8 14 19
Acos.T Acosh.T Asin.T Asinh.T Atan.T Atanh.T Cos.T Cosh.T DivNoNan.T Exp.T Expm1.T Log.T Log1p.T
MatrixTriangularSolve.T MulNoNan.T ReciprocalGrad.T ResourceApplyAdadelta.T ResourceApplyAdagrad.T
ResourceApplyAdagradV2.T ResourceApplyAdam.T ResourceApplyCenteredRMSProp.T ResourceApplyGradientDescent.T
ResourceApplyKerasMomentum.T ResourceApplyProximalAdagrad.T ResourceApplyProximalGradientDescent.T
ResourceApplyRMSProp.T Rsqrt.T RsqrtGrad.T Sigmoid.T SigmoidGrad.T Sin.T Sinh.T Sqrt.T SqrtGrad.T Tan.T Tanh.T
TanhGrad.T Xdivy.T Xlog1py.T Xlogy.T

1 2 8 19
Cholesky.T Qr.T SelfAdjointEigV2.T

1 2 14
StatelessMultinomial.T

1 2 14 19
Atan2.T AvgPool.T AvgPool3D.T AvgPool3DGrad.T AvgPoolGrad.T BesselI0e.T BesselI1e.T Ceil.T CheckNumerics.T
Conv2DBackpropFilter.T Conv3D.T Conv3DBackpropFilterV2.T Conv3DBackpropInputV2.T CumulativeLogsumexp.T
DepthwiseConv2dNative.T DepthwiseConv2dNativeBackpropFilter.T DepthwiseConv2dNativeBackpropInput.T Digamma.T
Elu.T EluGrad.T Erf.T Erfc.T Erfinv.T Floor.T HSVToRGB.T Igamma.T Igammac.T IsFinite.T IsInf.T IsNan.T
L2Loss.T LeakyRelu.T LeakyReluGrad.T Lgamma.T LinSpace.T LogSoftmax.T Ndtri.T QuantizeAndDequantizeV2.T
QuantizeAndDequantizeV3.T QuantizeAndDequantizeV4.T RGBToHSV.T RandomStandardNormal.dtype RandomUniform.dtype
ResizeBilinearGrad.T ResourceApplyAdaMax.T ResourceApplyAdagradDA.T ResourceApplyAddSign.T ResourceApplyFtrl.T
ResourceApplyFtrlV2.T ResourceApplyMomentum.T ResourceApplyPowerSign.T Rint.T Selu.T SeluGrad.T Softmax.T
SoftmaxCrossEntropyWithLogits.T Softplus.T SoftplusGrad.T Softsign.T SoftsignGrad.T
SparseSoftmaxCrossEntropyWithLogits.T StatefulStandardNormalV2.dtype StatefulTruncatedNormal.dtype
StatefulUniform.dtype StatelessRandomNormal.dtype StatelessRandomNormalV2.dtype StatelessRandomUniform.dtype
StatelessRandomUniformV2.dtype StatelessTruncatedNormal.dtype StatelessTruncatedNormalV2.dtype
StochasticCastToInt.Tin XlaReducePrecision.T XlaSvd.T

1 2 19
MatrixInverse.T MatrixSolve.T StatelessParameterizedTruncatedNormal.dtype Svd.T _UnaryOpsComposition.T

1 3 14 19 22
XlaAllReduce.T XlaReduceScatter.T

1 8 14
XlaEinsum.T

1 14
Dequantize.dtype FusedBatchNormV3.U SparseMatMul.Ta SparseMatMul.Tb

1 14 19
ApproxTopK.T FusedBatchNormGradV2.T FusedBatchNormGradV3.T FusedBatchNormV2.T FusedBatchNormV3.T LRN.T
LRNGrad.T MaxPool3D.T MaxPool3DGrad.T MaxPool3DGrad.TInput _FusedBatchNormEx.T

1 19
AdjustContrastv2.T AdjustHue.T AdjustSaturation.T NonMaxSuppressionV3.T NonMaxSuppressionV3.T_threshold
NonMaxSuppressionV4.T NonMaxSuppressionV4.T_threshold

3
StatelessMultinomial.Tseed StatelessParameterizedTruncatedNormal.Tseed StatelessRandomNormal.Tseed
StatelessRandomUniform.Tseed StatelessRandomUniformFullInt.Tseed StatelessRandomUniformInt.Tseed
StatelessTruncatedNormal.Tseed

3 4 5 6 9 17 22 23
BitwiseAnd.T BitwiseOr.T BitwiseXor.T Invert.T LeftShift.T PopulationCount.T RightShift.T

3 4 6 9
OneHot.TI

3 5 6
StochasticCastToInt.Tout

3 5 9
ArgMax.Tidx GatherNd.Tindices GatherV2.Tindices ScatterNd.Tindices StridedSlice.Index TopKV2.Tk
TopKV2.index_type UnsortedSegmentSum.Tindices

3 5 9 17
ArgMax.output_type TensorScatterUpdate.Tindices

3 6 9
SplitV.Tlen

3 9
All.Tidx Any.Tidx ArgMin.Tidx ArgMin.output_type BatchToSpace.Tidx BatchToSpaceND.Tblock_shape
BatchToSpaceND.Tcrops BroadcastArgs.T BroadcastGradientArgs.T BroadcastTo.Tidx ConcatOffset.shape_type
ConcatV2.Tidx ConjugateTranspose.Tperm Conv3DBackpropInputV2.Tshape Cumprod.Tidx Cumsum.Tidx
CumulativeLogsumexp.Tidx DataFormatDimMap.T DataFormatVecPermute.T DenseBincount.Tidx ExpandDims.Tdim
Fill.index_type Gather.Tindices GatherV2.Taxis InTopKV2.T InvertPermutation.T LinSpace.Tidx ListDiff.T
ListDiff.out_idx LowerBound.out_type MatrixBandPart.Tindex Max.Tidx Mean.Tidx Min.Tidx MirrorPad.Tpaddings
MirrorPadGrad.Tpaddings Multinomial.output_dtype Pad.Tpaddings PadV2.Tpaddings ParameterizedTruncatedNormal.T
Prod.Tidx RandomStandardNormal.T RandomUniform.T RandomUniformInt.T RandomUniformInt.Tout Reshape.Tshape
ResourceGather.Tindices ResourceScatterAdd.Tindices ResourceScatterDiv.Tindices ResourceScatterMax.Tindices
ResourceScatterMin.Tindices ResourceScatterMul.Tindices ResourceScatterNdAdd.Tindices
ResourceScatterNdSub.Tindices ResourceScatterNdUpdate.Tindices ResourceScatterSub.Tindices
ResourceScatterUpdate.Tindices ResourceStridedSliceAssign.Index ReverseSequence.Tlen ReverseV2.Tidx Roll.Taxis
Roll.Tshift SegmentMaxV2.Tindices SegmentMaxV2.Tnumsegments SegmentMinV2.Tindices SegmentMinV2.Tnumsegments
SegmentProdV2.Tindices SegmentProdV2.Tnumsegments SegmentSumV2.Tindices SegmentSumV2.Tnumsegments
Shape.out_type ShapeN.out_type Size.out_type Slice.Index SpaceToBatch.Tpaddings SpaceToBatchND.Tblock_shape
SpaceToBatchND.Tpaddings SparseSoftmaxCrossEntropyWithLogits.Tlabels SparseToDense.Tindices
StatelessMultinomial.output_dtype StatelessParameterizedTruncatedNormal.S StatelessRandomGetKeyCounter.Tseed
StatelessRandomGetKeyCounterAlg.Tseed StatelessRandomNormal.T StatelessRandomNormalV2.Tshape
StatelessRandomUniform.T StatelessRandomUniformFullInt.T StatelessRandomUniformFullInt.dtype
StatelessRandomUniformFullIntV2.Tshape StatelessRandomUniformInt.T StatelessRandomUniformInt.dtype
StatelessRandomUniformIntV2.Tshape StatelessRandomUniformV2.Tshape StatelessTruncatedNormal.T
StatelessTruncatedNormalV2.Tshape StridedSliceGrad.Index Sum.Tidx TensorListConcatV2.shape_type
TensorListElementShape.shape_type TensorListFromTensor.shape_type TensorListGetItem.Tshape
TensorListReserve.shape_type TensorListSplit.shape_type TensorScatterAdd.Tindices TensorScatterMax.Tindices
TensorScatterMin.Tindices TensorScatterSub.Tindices TensorStridedSliceUpdate.Index Tile.Tmultiples
Transpose.Tperm TruncatedNormal.T Unique.out_idx UniqueV2.Taxis UniqueV2.out_idx UnsortedSegmentMax.Tindices
UnsortedSegmentMax.Tnumsegments UnsortedSegmentMin.Tindices UnsortedSegmentMin.Tnumsegments
UnsortedSegmentProd.Tindices UnsortedSegmentProd.Tnumsegments UnsortedSegmentSum.Tnumsegments
UpperBound.out_type VariableShape.out_type XlaBroadcastHelper.Tindices XlaConv.Tindices XlaConvV2.Tindices
XlaDynamicSlice.Tindices XlaDynamicUpdateSlice.Tindices XlaGather.Tindices XlaPad.Tindices
XlaReduceWindow.Tindices XlaRngBitGenerator.Tshape XlaScatter.Tindices XlaSelectAndScatter.Tindices

3 9 21
EmptyTensorList.shape_type

3 9 22 23
StatefulUniformFullInt.dtype StatefulUniformInt.dtype StatelessRandomUniformFullIntV2.dtype
StatelessRandomUniformIntV2.dtype

4 22 23
XlaRngBitGenerator.dtype

6 11
_FusedConv2D.T

8
Angle.T Complex.Tout ComplexAbs.T Conj.T FFT.Tcomplex FFT2D.Tcomplex FFT3D.Tcomplex IFFT.Tcomplex
IFFT2D.Tcomplex IFFT3D.Tcomplex IRFFT.Tcomplex IRFFT2D.Tcomplex IRFFT3D.Tcomplex Imag.T RFFT.Tcomplex
RFFT2D.Tcomplex RFFT3D.Tcomplex Real.T

11
UniformQuantizedConvolution.Tin UniformQuantizedDot.Tin

11 12
Dequantize.T

11 12 13
UniformDequantize.Tin UniformQuantize.Tout

11 13
UniformRequantize.Tin UniformRequantize.Tout

13
UniformQuantizedAdd.T UniformQuantizedClipByValue.T UniformQuantizedConvolution.Tout UniformQuantizedDot.Tout
"""

TYPE_NAMES = tuple(_TYPE_NAMES.split())
OPS = frozenset(_OPS.split())
TPU_ONLY = frozenset(_TPU_ONLY.split())


def _allowed() -> dict[str, frozenset[int]]:
    result: dict[str, frozenset[int]] = {}
    for paragraph in _TYPES.strip().split("\n\n"):
        numbers, _, places = paragraph.partition("\n")
        result.update(dict.fromkeys(places.split(), frozenset(int(number) for number in numbers.split())))
    return result


# `operation.attribute` -> numbers of the types that its kernels take.
ALLOWED = _allowed()
